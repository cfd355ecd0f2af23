"""Lesson 10, Aligning a language model."""
