//! Approvals played at random: two gateways on one store, clients that come and go, people who race,
//! edits, time that passes, and crashes. What must hold whatever happens is in `play`.

mod play;
mod scene;
mod tool;
