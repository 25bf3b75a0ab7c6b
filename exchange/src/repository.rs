//! A collection as an OAI-PMH repository.
