"""Exams from banks of questions: `exams/NN.md` is read, a seed draws a paper, and a writer gives it its format."""
