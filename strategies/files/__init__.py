"""Reading and writing files, above all the JSON files of this package, and the folders of a user."""
