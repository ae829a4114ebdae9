//! Plans and checks for the tests of rules.
