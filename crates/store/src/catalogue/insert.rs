//! Batch inserts: many rows a statement, since a whole registry has hundreds of thousands.

use sqlx::{Postgres, QueryBuilder, Sqlite};

use super::{CatalogueChange, CatalogueServer, CatalogueTool};
use crate::column::{micros, text};
use crate::{Conn, StoreError};

/// Rows of one statement: with a dozen columns far below what either database takes.
const ROWS: usize = 400;

macro_rules! insert {
    ($conn:expr, $sql:literal, $items:expr, |$row:ident, $item:ident| $bind:block) => {
        for chunk in $items.chunks(ROWS) {
            match $conn {
                Conn::Postgres(conn) => {
                    let mut query = QueryBuilder::<Postgres>::new($sql);
                    query.push_values(chunk, |mut $row, $item| $bind);
                    query.build().execute(&mut **conn).await?;
                }
                Conn::Sqlite(conn) => {
                    let mut query = QueryBuilder::<Sqlite>::new($sql);
                    query.push_values(chunk, |mut $row, $item| $bind);
                    query.build().execute(&mut **conn).await?;
                }
            }
        }
    };
}

/// Adds records that are not there yet.
pub async fn insert_servers(
    conn: &mut Conn<'_>,
    servers: &[CatalogueServer],
) -> Result<(), StoreError> {
    insert!(
        conn,
        "INSERT INTO catalogue_servers (id, slug, origin, entry, is_deleted, is_proven, record_updated_at, \
         tools_first_at, tools_last_at, first_seen_at, changed_at) ",
        servers,
        |row, server| {
            row.push_bind(server.id)
                .push_bind(text(&server.slug))
                .push_bind(text(&server.origin))
                .push_bind(text(&server.entry))
                .push_bind(server.is_deleted)
                .push_bind(server.is_proven)
                .push_bind(server.record_updated_at.map(micros))
                .push_bind(server.tools_first_at.map(micros))
                .push_bind(server.tools_last_at.map(micros))
                .push_bind(micros(server.first_seen_at))
                .push_bind(micros(server.changed_at));
        }
    );
    Ok(())
}

/// Adds tools that are not there yet.
pub async fn insert_tools(conn: &mut Conn<'_>, tools: &[CatalogueTool]) -> Result<(), StoreError> {
    insert!(
        conn,
        "INSERT INTO catalogue_tools (server_id, name, place, definition, about, category, severity, \
         poisoned) ",
        tools,
        |row, tool| {
            row.push_bind(tool.server_id)
                .push_bind(text(&tool.name))
                .push_bind(tool.place)
                .push_bind(text(&tool.definition))
                .push_bind(text(&tool.about))
                .push_bind(tool.category.as_str())
                .push_bind(tool.severity.as_str())
                .push_bind(tool.poisoned);
        }
    );
    Ok(())
}

/// Adds changes.
pub async fn insert_changes(
    conn: &mut Conn<'_>,
    changes: &[CatalogueChange],
) -> Result<(), StoreError> {
    insert!(
        conn,
        "INSERT INTO catalogue_changes (id, server_id, at, kind, what) ",
        changes,
        |row, change| {
            row.push_bind(change.id)
                .push_bind(change.server_id)
                .push_bind(micros(change.at))
                .push_bind(text(&change.kind))
                .push_bind(text(&change.what));
        }
    );
    Ok(())
}
