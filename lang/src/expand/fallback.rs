//! What a network with mistakes still becomes: its type, with every constant, so that each mistake makes one error and
//! the code that uses the type makes none.

use proc_macro2::TokenStream;

use super::constants::{NAMES, SUMMARY, put, write_network, write_uses};
use super::{assemble, outer_attributes, write_user_constants};
use crate::Declaration;

/// The type and placeholders for its constants. Nothing of it can ever run: the build has failed.
pub(super) fn network(declaration: &Declaration) -> TokenStream {
    let name = declaration.name.to_string();
    let outer = outer_attributes(declaration);
    let mut code = format!("{outer} impl {name} {{\n");
    for constant in NAMES {
        if !["NAME", "PLAN"].contains(constant) {
            code.push_str("#[doc = \"Not known after a mistake.\"]");
        }
        match *constant {
            "LAYERS" => code.push_str("pub const LAYERS: &'static [::plimsoll::LayerRow] = &[];\n"),
            "PEAK_CLASSES" => code.push_str(
                "pub const PEAK_CLASSES: &'static [(&'static ::core::primitive::str, ::core::primitive::u64)] = &[];\n",
            ),
            "BATCH" | "MAX_BATCH" => {
                put(&mut code, format_args!("pub const {constant}: ::core::primitive::usize = 1;\n"))
            }
            "NAME" | "PLAN" => {}
            _ => put(&mut code, format_args!("pub const {constant}: ::core::primitive::u64 = 0;\n")),
        }
    }
    write_user_constants(&mut code, &declaration.consts);
    code.push_str(SUMMARY);
    code.push_str("}\n");
    write_network(&mut code, &name, &outer, &[], None);
    let constants = NAMES.iter().copied().filter(|name| !["NAME", "PLAN"].contains(name));
    write_uses(&mut code, &name, &outer, constants, &declaration.consts);
    assemble(declaration, "", &code)
}
