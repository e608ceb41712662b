//! The pages, driven through the real router on a real store.

mod account;
mod account_links;
mod actions;
mod approvals;
mod browser;
mod catalogue;
mod choice;
mod ends;
mod errors;
mod exports;
mod find;
mod forms;
#[path = "../../../policy/tests/it/generate.rs"]
#[expect(dead_code, reason = "the policy's own tests use more of it")]
mod generate;
mod grants;
mod hostile;
mod join_domains;
mod limits;
mod logs;
mod notifications;
mod outlines;
mod overview;
mod passkeys;
mod policies;
mod providers;
mod public;
#[path = "../../../policy/tests/it/random.rs"]
#[expect(dead_code, reason = "the policy's own tests use more of it")]
mod random;
mod roles;
mod routes;
mod second_factor;
mod servers;
mod structured_data;
mod world;
