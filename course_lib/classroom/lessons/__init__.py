"""What each lesson asks: questions, predictions and exercises, kept out of the notebook so that it spoils nothing.

`lesson("05")` makes the content of `lesson_05` known, so that a cell only says quiz("bottleneck").
"""
