//! The data path from outside: a real port in front, a raw upstream behind, and every byte looked at.

mod approvals;
mod auth;
mod bridge;
mod doubt;
mod drift;
mod failures;
mod fake_approvals;
mod fakes;
mod gateway;
mod hello;
mod json;
mod limits;
mod lists;
mod log;
mod modern;
mod odd_answers;
mod pages;
mod pressure;
mod replicas;
mod sessions;
mod stage;
mod streaming;
