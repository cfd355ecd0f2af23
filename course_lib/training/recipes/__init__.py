"""Recipes: how each lesson's models are trained and scored, with every setting in one place."""
