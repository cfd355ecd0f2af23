"""The companion library of the course: the real implementations that the lessons show."""
