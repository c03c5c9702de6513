"""The link layer: packets on one line, whole ones or a fluid."""
