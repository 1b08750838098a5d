use plimsoll_plan::arena::*;
fn main() {
    let limit: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    for path in std::env::args().skip(2) {
        let text = std::fs::read_to_string(&path).unwrap();
        let buffers = text.lines().skip(1).map(|l| { let v: Vec<u64> = l.split(',').map(|x| x.parse().unwrap()).collect();
            Buffer { lifespan: Lifespan::new(v[1] as u32, v[2] as u32), size: v[3], alignment: 1 } }).collect();
        println!("{path}");
        experiment(&Problem { buffers, capacity: Some(1048576) }, limit);
    }
}
