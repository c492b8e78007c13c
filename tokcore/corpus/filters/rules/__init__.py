"""The filters of lengths, scripts, normal forms and entities."""
