//! What a member may do: authorise, validate, write, record the admin event.
