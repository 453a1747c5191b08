"""The parts of the scale-out benchmark; `bench.scale` runs them."""
