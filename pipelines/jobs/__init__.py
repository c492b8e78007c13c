"""What a job reads, writes and reports."""
