"""The course as a site for reading: lessons as they are stored, guides, and the library's reference."""
