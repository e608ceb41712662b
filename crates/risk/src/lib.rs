//! Classifies tools, explains why, recommends rules, knows the kinds of attack. Pure.
