//! Subscribers that are told of changes, and subscriptions to others: WebSub and ResourceSync.
