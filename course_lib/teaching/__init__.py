"""A class and its term: bundles for students, plans, exams and reports."""
