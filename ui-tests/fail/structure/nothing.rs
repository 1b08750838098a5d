use plimsoll::network;

network! {}

fn main() {}
