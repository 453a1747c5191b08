"""Parts of the scale benchmark; `bench.scale` runs them."""
