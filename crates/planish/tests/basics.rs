use planish::Session;
#[test]
fn one() {
    let s = Session::builder().target_partitions(1).build().unwrap();
    let q = s.sql("select 1 as a, x from (values (1),(2)) as t(x)").unwrap();
    println!("{}", q.explain(true, false).unwrap());
    println!("{:?}", q.collect().unwrap());
}
