"""The cluster layer: tasks that hold several resources while they run."""
