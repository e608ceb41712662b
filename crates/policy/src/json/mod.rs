//! JSON over raw text, strictly RFC 8259: positions kept, digits kept, and
//! everything that two readers could read in two ways refused.

mod lexer;
mod place;
mod strict;
mod text;
mod tree;
mod words;
mod write;

pub(crate) use lexer::{Lexer, MAX_DEPTH, SyntaxError};
pub(crate) use place::{Lines, Place, escape_pointer};
pub(crate) use strict::{TopLevel, check_strict};
pub(crate) use text::Text;
pub(crate) use tree::{Kind, Member, Node, Tree, parse};
pub(crate) use write::{push_quoted, quote, to_value};
