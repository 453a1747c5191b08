"""Linked tables: their judge, beside their input too, and whether the dates of a person moved together."""
