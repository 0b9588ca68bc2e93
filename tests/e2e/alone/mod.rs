//! Stories that disturb the operator. They come first by their name, so that no other story has to end before one of them can be told.

mod digests;
mod latency;
mod operator;
mod outage;
