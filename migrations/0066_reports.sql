-- What readers of public pages say is wrong there.
CREATE TABLE catalogue_reports (
    id UUID NOT NULL PRIMARY KEY,
    at TIMESTAMPTZ NOT NULL,
    page TEXT NOT NULL,
    text TEXT NOT NULL,
    -- How to reach whoever wrote it; empty: they did not say.
    contact TEXT NOT NULL
);
