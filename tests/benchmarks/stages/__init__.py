"""What this project does in each task, as functions for `task_process`."""
