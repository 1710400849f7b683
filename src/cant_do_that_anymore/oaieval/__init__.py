"""The command ``oaieval``, as the users of the original know it."""
