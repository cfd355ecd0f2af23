"""Lesson 15: Transformers everywhere."""
