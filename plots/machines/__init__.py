"""What several machines say of the same cases: a page and its figures."""
