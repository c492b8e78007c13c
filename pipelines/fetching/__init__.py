"""Inputs from the web: fetched once into the work folder, resumed and checked."""
