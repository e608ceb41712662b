//! The pages, driven through the real router on a real store.

mod account;
mod account_links;
mod approvals;
mod browser;
mod catalogue;
mod choice;
mod forms;
mod grants;
mod hostile;
mod limits;
mod logs;
mod notifications;
mod outlines;
mod policies;
mod providers;
mod public;
mod routes;
mod second_factor;
mod servers;
