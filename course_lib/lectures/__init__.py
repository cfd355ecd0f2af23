"""Lectures: slides, notes and hand-outs from the cells of a lesson."""
