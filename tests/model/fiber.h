/* SPDX-License-Identifier: MIT */
/*
 * Fibers for the model checker: a stack each, and a switch that costs a few nanoseconds where we
 * have it (ucontext makes two system calls for each).
 */
#ifndef TESTS_MODEL_FIBER_H
#define TESTS_MODEL_FIBER_H

#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#define FIBER_STACK_BYTES 65536

typedef void fiber_fn(void);

#if defined(__x86_64__)

struct fiber {
    void *stack_pointer;
};

/* What the calling convention lets a callee keep is pushed; the rest the compiler has saved. */
void fiber_switch_to(void **save, void *load);
__asm__(".text\n"
        ".globl fiber_switch_to\n"
        ".type fiber_switch_to, @function\n"
        "fiber_switch_to:\n"
        "    push %rbp\n    push %rbx\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbx\n    pop %rbp\n"
        "    ret\n"
        ".size fiber_switch_to, .-fiber_switch_to\n");

static inline void fiber_init(struct fiber *fiber, uint8_t *stack, fiber_fn *run)
{
    uintptr_t top = ((uintptr_t)stack + FIBER_STACK_BYTES) & ~(uintptr_t)15;
    uintptr_t *frame = (uintptr_t *)top - 8; /* six registers, where to go, and nowhere to return */
    for (int i = 0; i < 8; i++) {
        frame[i] = 0;
    }
    frame[6] = (uintptr_t)run;
    fiber->stack_pointer = frame;
}

static inline void fiber_switch(struct fiber *from, struct fiber *to)
{
    fiber_switch_to(&from->stack_pointer, to->stack_pointer);
}

#else

struct fiber {
    ucontext_t context;
};

static inline void fiber_init(struct fiber *fiber, uint8_t *stack, fiber_fn *run)
{
    (void)getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = stack;
    fiber->context.uc_stack.ss_size = FIBER_STACK_BYTES;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, run, 0);
}

static inline void fiber_switch(struct fiber *from, struct fiber *to)
{
    (void)swapcontext(&from->context, &to->context);
}

#endif

#endif
