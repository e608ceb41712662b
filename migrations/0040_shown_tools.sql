-- When a list that passed by last showed a tool as something else than the server shows the gateway.
ALTER TABLE tools ADD COLUMN shown_at TIMESTAMPTZ;
