"""The lessons' models on real data sets, for `course train NAME --data SET`."""
