//! The schema as the database itself tells it, and rows made from it: one of every table for a
//! workspace, so that a new table is tried without anybody thinking of it.

use std::collections::{BTreeMap, BTreeSet};

use sluice_store::Conn;
use sqlx::{AssertSqlSafe, Row as _};
use uuid::Uuid;

/// What a `CHECK` lets in, where any text will not do.
const WORDS: [(&str, &str, &str); 11] = [
    ("*", "role", "viewer"),
    ("tools", "state", "current"),
    ("policies", "kind", "custom"),
    ("endpoints", "kind", "webhook"),
    ("applied_objects", "kind", "server"),
    ("account_links", "purpose", "verify"),
    ("passkey_challenges", "purpose", "register"),
    ("approvals", "status", "pending"),
    ("outbox", "status", "waiting"),
    ("workspaces", "settings", "{}"),
    ("workspaces", "limits", "{}"),
];

#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    kind: String,
    required: bool,
}

/// A foreign key: pairs of a column here and one there.
#[derive(Debug, Clone)]
pub(crate) struct Reference {
    pub(crate) to: String,
    pub(crate) pairs: Vec<(String, String)>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    pub(crate) columns: Vec<Column>,
    pub(crate) references: Vec<Reference>,
}

impl Column {
    pub(crate) fn is_id(&self) -> bool {
        // `changes` has SQLite's own type there.
        ["uuid", "blob"].contains(&self.kind.as_str())
    }
}

impl Table {
    pub(crate) fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|one| one.name == column)
    }
}

#[derive(Debug)]
pub(crate) struct Schema {
    pub(crate) tables: BTreeMap<String, Table>,
    sqlite: bool,
}

/// A row by column, each value as it is written in SQL.
pub(crate) type Values = BTreeMap<String, String>;

pub(crate) async fn run(conn: &mut Conn<'_>, sql: &str) -> Result<u64, sqlx::Error> {
    let query = sqlx::query(AssertSqlSafe(sql.to_owned()));
    match conn {
        Conn::Postgres(c) => query.execute(&mut **c).await.map(|done| done.rows_affected()),
        Conn::Sqlite(c) => {
            let query = sqlx::query(AssertSqlSafe(sql.to_owned()));
            query.execute(&mut **c).await.map(|done| done.rows_affected())
        }
    }
}

pub(crate) async fn count(conn: &mut Conn<'_>, sql: &str) -> i64 {
    let sql = AssertSqlSafe(sql.to_owned());
    let found = match conn {
        Conn::Postgres(c) => sqlx::query_scalar(sql).fetch_one(&mut **c).await,
        Conn::Sqlite(c) => sqlx::query_scalar(sql).fetch_one(&mut **c).await,
    };
    found.expect("a number")
}

async fn texts<const N: usize>(conn: &mut Conn<'_>, sql: &'static str) -> Vec<[String; N]> {
    let all = |get: &dyn Fn(usize) -> String| std::array::from_fn(get);
    match conn {
        Conn::Postgres(c) => {
            let rows = sqlx::query(sql).fetch_all(&mut **c).await.expect("reads the schema");
            rows.iter().map(|row| all(&|at| row.get::<String, _>(at))).collect()
        }
        Conn::Sqlite(c) => {
            let rows = sqlx::query(sql).fetch_all(&mut **c).await.expect("reads the schema");
            rows.iter().map(|row| all(&|at| row.get::<String, _>(at))).collect()
        }
    }
}

const PG_COLUMNS: &str =
    "SELECT c.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod),
        CASE WHEN a.attnotnull THEN 'yes' ELSE 'no' END
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
      AND a.attnum > 0 AND NOT a.attisdropped AND NOT c.relispartition";
const PG_REFERENCES: &str =
    "SELECT con.conrelid::regclass::text, con.confrelid::regclass::text, con.conname::text,
        a.attname::text, b.attname::text
    FROM pg_constraint con, unnest(con.conkey, con.confkey) AS k (here, there)
    JOIN pg_attribute a ON TRUE JOIN pg_attribute b ON TRUE
    WHERE con.contype = 'f' AND con.connamespace = current_schema()::regnamespace
      AND a.attrelid = con.conrelid AND a.attnum = k.here
      AND b.attrelid = con.confrelid AND b.attnum = k.there";
const LITE_COLUMNS: &str =
    "SELECT m.name, p.name, p.type, CASE WHEN p.\"notnull\" THEN 'yes' ELSE 'no' END
    FROM sqlite_schema m JOIN pragma_table_info(m.name) p
    WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'";
const LITE_REFERENCES: &str = "SELECT m.name, f.\"table\", CAST(f.id AS TEXT), f.\"from\", f.\"to\"
    FROM sqlite_schema m JOIN pragma_foreign_key_list(m.name) f WHERE m.type = 'table'";

impl Schema {
    pub(crate) async fn read(conn: &mut Conn<'_>) -> Self {
        let sqlite = matches!(conn, Conn::Sqlite(_));
        let (columns, references) =
            if sqlite { (LITE_COLUMNS, LITE_REFERENCES) } else { (PG_COLUMNS, PG_REFERENCES) };
        let mut tables: BTreeMap<String, Table> = BTreeMap::new();
        for [table, name, kind, required] in texts(conn, columns).await {
            let kind = kind.to_lowercase();
            let column = Column { name, kind, required: required == "yes" };
            tables.entry(table).or_default().columns.push(column);
        }
        let mut found: BTreeMap<(String, String, String), Vec<(String, String)>> = BTreeMap::new();
        for [table, to, key, here, there] in texts(conn, references).await {
            found.entry((table, to, key)).or_default().push((here, there));
        }
        for ((table, to, _), pairs) in found {
            let table = tables.get_mut(&table).expect("a table of the schema");
            table.references.push(Reference { to, pairs });
        }
        Self { tables, sqlite }
    }

    /// The column that says whose a row is; `None` in tables that belong to no workspace.
    pub(crate) fn owner(&self, table: &str) -> Option<&'static str> {
        match table {
            "workspaces" => Some("id"),
            _ => self.tables[table].has("workspace_id").then_some("workspace_id"),
        }
    }

    /// Tables with a workspace's rows, those that others refer to first.
    pub(crate) fn tenant_tables(&self) -> Vec<&str> {
        self.in_order().into_iter().filter(|table| self.owner(table).is_some()).collect()
    }

    fn in_order(&self) -> Vec<&str> {
        let mut out: Vec<&str> = Vec::new();
        while out.len() < self.tables.len() {
            let before = out.len();
            for (name, table) in &self.tables {
                let known = |to: &str| out.contains(&to) || to == name;
                if !out.contains(&name.as_str())
                    && table.references.iter().all(|one| known(&one.to))
                {
                    out.push(name);
                }
            }
            assert!(out.len() > before, "tables refer to each other in a circle");
        }
        out
    }

    pub(crate) fn uuid(&self, id: Uuid) -> String {
        if self.sqlite { format!("X'{}'", id.simple()) } else { format!("'{id}'::uuid") }
    }

    fn value(&self, table: &str, column: &Column) -> String {
        let new = Uuid::now_v7();
        let bytes = new.simple();
        match column.kind.as_str() {
            "uuid" => self.uuid(new),
            "text" => {
                let word = WORDS
                    .iter()
                    .find(|(of, name, _)| (*of == table || *of == "*") && *name == column.name);
                word.map_or_else(|| format!("'{new}'"), |(_, _, word)| format!("'{word}'"))
            }
            "bytea" | "blob" if self.sqlite => format!("X'{bytes}'"),
            "bytea" => format!("decode('{bytes}', 'hex')"),
            "boolean" => "TRUE".to_owned(),
            "bigint" | "integer" => (new.as_u128() & 0x3fff_ffff).to_string(),
            "timestamptz" | "timestamp with time zone" => "'2026-11-30T12:00:00+00:00'".to_owned(),
            other => panic!("{table}.{}: a value of type {other}?", column.name),
        }
    }

    /// A new row of a table in a workspace, which refers to that workspace's rows.
    pub(crate) fn row(&self, table: &str, workspace: Uuid, others: &Rows) -> Values {
        let it = &self.tables[table];
        let mut values = Values::new();
        for column in it.columns.iter().filter(|column| column.required) {
            values.insert(column.name.clone(), self.value(table, column));
        }
        for reference in &it.references {
            let Some(there) = others.get(&(reference.to.clone(), workspace)) else { continue };
            for (here, column) in &reference.pairs {
                values.insert(here.clone(), there[column].clone());
            }
        }
        if let Some(owner) = self.owner(table) {
            values.insert(owner.to_owned(), self.uuid(workspace));
        }
        values
    }

    /// One row of every table for a workspace; what belongs to none is made with it.
    pub(crate) async fn fill(&self, conn: &mut Conn<'_>, workspace: Uuid, rows: &mut Rows) {
        let skipped = BTreeSet::from(["sluice_migrations", "catalogue_revision"]);
        for table in self.in_order() {
            if skipped.contains(table) {
                continue;
            }
            let values = self.row(table, workspace, rows);
            let made = run(conn, &insert(table, &values)).await;
            made.unwrap_or_else(|error| panic!("{table}: {error}\n{}", insert(table, &values)));
            rows.insert((table.to_owned(), workspace), values);
        }
    }
}

/// The row of a table in a workspace.
pub(crate) type Rows = BTreeMap<(String, Uuid), Values>;

pub(crate) fn insert(table: &str, values: &Values) -> String {
    let names = values.keys().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let those = values.values().cloned().collect::<Vec<_>>().join(", ");
    format!("INSERT INTO {table} ({names}) VALUES ({those})")
}
