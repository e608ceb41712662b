//! The store on both databases. Each test has a fresh database of its own.

mod accounts;
mod approvals;
mod audit;
mod calls;
mod cancelled;
mod catalogue;
mod configuration;
mod day_counts;
mod days;
mod feed;
mod history;
mod migrations;
mod outbox;
mod plans;
mod releases;
mod routes;
mod saved_filters;
mod schema;
mod support;
mod tenancy;
mod tools;
mod walls;
