;; Each step finds one prime. All state is in the memory and in the exported global.
(module
  (import "env" "print" (func $print (param i64)))
  (memory (export "memory") 1)
  (global $sum (export "sum") (mut i64) (i64.const 2))
  ;; The number of primes, and the first one. The list outgrows the first page of the memory.
  (data (i32.const 0) "\01\00\00\00")
  (data (i32.const 60000) "\02\00\00\00\00\00\00\00")

  (func $at (param $index i32) (result i32)
    (i32.add (i32.const 60000) (i32.shl (local.get $index) (i32.const 3))))

  (func $is_prime (param $n i64) (result i32) (local $i i32) (local $prime i64)
    (loop $next
      (local.set $prime (i64.load (call $at (local.get $i))))
      (if (i64.gt_u (i64.mul (local.get $prime) (local.get $prime)) (local.get $n))
        (then (return (i32.const 1))))
      (if (i64.eqz (i64.rem_u (local.get $n) (local.get $prime)))
        (then (return (i32.const 0))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br $next))
    (unreachable))

  (func (export "step") (result i32) (local $count i32) (local $n i64)
    (local.set $count (i32.load (i32.const 0)))
    (if (i32.gt_u (call $at (i32.add (local.get $count) (i32.const 1)))
                  (i32.shl (memory.size) (i32.const 16)))
      (then (drop (memory.grow (i32.const 1)))))
    (local.set $n (i64.load (call $at (i32.sub (local.get $count) (i32.const 1)))))
    (loop $next
      (local.set $n (i64.add (local.get $n) (i64.const 1)))
      (br_if $next (i32.eqz (call $is_prime (local.get $n)))))
    (i64.store (call $at (local.get $count)) (local.get $n))
    (i32.store (i32.const 0) (i32.add (local.get $count) (i32.const 1)))
    (global.set $sum (i64.add (global.get $sum) (local.get $n)))
    (call $print (local.get $n))
    (if (i32.eq (local.get $count) (i32.const 2999))
      (then (call $print (global.get $sum)) (return (i32.const 0))))
    (i32.const 1)))
