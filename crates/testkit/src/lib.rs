//! For tests only: databases, Redis, fake and real upstreams, clock, app builder.
