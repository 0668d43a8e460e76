/* SPDX-License-Identifier: MIT */
/*
 * Where io_uring is refused, the refusal is understood: the right error for whoever chooses
 * engines, the right cause in the report.  Filters and limits are put on the test's own process,
 * which is its alone; the sysctl is read from a folder made for the test.
 */
#include "engine/uring/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "engine/uring/fixture_test.h"

/* From here on the system call answers with `error`. */
static void refuse(long system_call, int error)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)system_call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((uint32_t)error & SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = GI_ARRAY_COUNT(program), .filter = program};
    GT_EQUAL(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    GT_EQUAL(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

static int create_engine(void)
{
    struct fixture fixture;
    int error = fixture_try(&fixture, 64);
    if (error == 0) {
        fixture_fini(&fixture);
    }
    return error;
}

static enum gori_feature_state reported_state(void)
{
    struct gori_engine_report report;
    gi_uring_report(&report);
    GT_EQUAL(report.usable, report.state == GORI_FEATURE_USED);
    GT_CHECK(report.text[0] != '\0');
    return report.state;
}

/* "auto" goes on to the next engine, works, and says why. */
static void check_fallback(const char *word)
{
    struct gi_buffers buffers;
    GT_EQUAL(gi_buffers_init(&buffers, NULL, 4096, 16), 0);
    struct gi_engine_config config = {.buffers = &buffers, .ops_max = 100};
    struct gi_engine_choice choice;
    GT_EQUAL(gi_engine_choose("auto", &config, &choice), 0);
    GT_EQUAL_STRING(choice.engine->impl->name, "epoll");
    GT_CHECK(choice.fallback_reason != NULL);
    GT_CHECK(strstr(choice.fallback_reason, word) != NULL);
    choice.engine->impl->destroy(choice.engine);
    gi_buffers_fini(&buffers);
}

GT_TEST(setup_refused_by_a_filter)
{
    refuse(SYS_io_uring_setup, EPERM);
    GT_EQUAL(create_engine(), GORI_EPERM);
    GT_EQUAL(reported_state(), GORI_FEATURE_SECCOMP);
    check_fallback("seccomp");
}

GT_TEST(setup_hidden_by_a_filter)
{
    refuse(SYS_io_uring_setup, ENOSYS);
    GT_EQUAL(create_engine(), GORI_ENOSYS);
    GT_EQUAL(reported_state(), GORI_FEATURE_SECCOMP);
    check_fallback("seccomp");
}

/* Goal: sandboxes that let a ring be made and then nothing be done with it. */
GT_TEST(enter_refused_by_a_filter)
{
    refuse(SYS_io_uring_enter, EPERM);
    GT_EQUAL(create_engine(), GORI_EPERM);
    GT_EQUAL(reported_state(), GORI_FEATURE_SECCOMP);
    check_fallback("seccomp");
}

GT_TEST(register_refused_by_a_filter)
{
    refuse(SYS_io_uring_register, EACCES);
    GT_EQUAL(create_engine(), GORI_EPERM);
    GT_EQUAL(reported_state(), GORI_FEATURE_SECCOMP);
}

GT_TEST(kernel_that_knows_no_flag_of_ours_is_too_old)
{
    refuse(SYS_io_uring_setup, EINVAL);
    GT_EQUAL(create_engine(), GORI_ENOSYS);
    GT_EQUAL(reported_state(), GORI_FEATURE_KERNEL);
}

/* Goal: running out of something is an error, never a quieter engine. */
GT_TEST(lack_of_descriptors_is_no_reason_to_fall)
{
    refuse(SYS_io_uring_setup, EMFILE);
    struct gi_buffers buffers;
    GT_EQUAL(gi_buffers_init(&buffers, NULL, 4096, 16), 0);
    struct gi_engine_config config = {.buffers = &buffers, .ops_max = 100};
    struct gi_engine_choice choice;
    GT_EQUAL(gi_engine_choose("auto", &config, &choice), GORI_EMFILE);
    gi_buffers_fini(&buffers);
}

/* Becomes a user who may lock `bytes` of memory and no more. */
static void limit_memory(uint64_t bytes)
{
    struct rlimit limit = {.rlim_cur = 0, .rlim_max = bytes};
    GT_EQUAL(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
    if (geteuid() == 0) {
        GT_EQUAL(setuid(65534), 0);
    }
}

GT_TEST(lack_of_locked_memory_is_no_reason_to_fall)
{
    limit_memory(0);
    int error = create_engine();
    if (error == 0) {
        GT_SKIP("this kernel does not count rings as locked memory");
    }
    GT_EQUAL(error, GORI_ENOMEM);
    GT_EQUAL(reported_state(), GORI_FEATURE_MEMLOCK);
}

/* Goal: a soft limit is raised to the hard one, and rings are made as small as it asks for. */
GT_TEST(little_locked_memory_makes_small_rings)
{
    limit_memory(48 * 1024);
    struct fixture fixture;
    fixture_init(&fixture, 64);
    GT_CHECK(gi_ring_cq_entries(&fixture.uring->ring) <= 2048);
    fixture_fini(&fixture);
}

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    GT_CHECK(fd >= 0);
    GT_EQUAL(write(fd, text, strlen(text)), strlen(text));
    gi_os_close(fd);
}

static void make_folder(const char *folder, const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    GT_EQUAL(mkdir(path, 0700), 0);
}

static void remove_all(const char *folder)
{
    static const char *const names[] = {"self/status", "self", "sys/kernel/io_uring_disabled",
                                        "sys/kernel", "sys"};
    for (size_t i = 0; i < GI_ARRAY_COUNT(names); i++) {
        char path[256];
        (void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        GT_EQUAL(remove(path), 0);
    }
    GT_EQUAL(rmdir(folder), 0);
}

/* Goal: each cause of EPERM is told from the others by what lies around it. */
GT_TEST(refusal_is_explained_by_its_surroundings)
{
    char folder[] = "/tmp/gori-probe-XXXXXX";
    GT_CHECK(mkdtemp(folder) != NULL);
    make_folder(folder, "sys");
    make_folder(folder, "sys/kernel");
    make_folder(folder, "self");
    struct gori_engine_report report = {0};
    struct gi_uring_surroundings around;

    gi_uring_surroundings_read(folder, &around);
    GT_EQUAL(around.sysctl_disabled, -1);
    GT_CHECK(!around.filtered);
    gi_uring_explain(EPERM, &around, &report);
    GT_EQUAL(report.state, GORI_FEATURE_ERROR);
    gi_uring_explain(ENOSYS, &around, &report);
    GT_EQUAL(report.state, GORI_FEATURE_KERNEL);

    write_text(folder, "self/status", "Name:\tgori\nNoNewPrivs:\t1\nSeccomp:\t2\n");
    write_text(folder, "sys/kernel/io_uring_disabled", "0\n");
    gi_uring_surroundings_read(folder, &around);
    GT_CHECK(around.filtered);
    gi_uring_explain(EPERM, &around, &report);
    GT_EQUAL(report.state, GORI_FEATURE_SECCOMP);

    write_text(folder, "sys/kernel/io_uring_disabled", "2\n");
    gi_uring_surroundings_read(folder, &around);
    GT_EQUAL(around.sysctl_disabled, 2);
    gi_uring_explain(EPERM, &around, &report);
    GT_EQUAL(report.state, GORI_FEATURE_SYSCTL);
    GT_CHECK(strstr(report.text, "kernel.io_uring_disabled is 2") != NULL);
    remove_all(folder);
}

GT_TEST(memory_limit_is_told_from_lack_of_memory)
{
    struct gori_engine_report report = {0};
    struct gi_uring_surroundings around = {.memlock_bytes = 65536};
    gi_uring_explain(ENOMEM, &around, &report);
    GT_EQUAL(report.state, GORI_FEATURE_MEMLOCK);
    GT_CHECK(strstr(report.text, "64 KiB") != NULL);
    around.memlock_exempt = true;
    gi_uring_explain(ENOMEM, &around, &report);
    GT_EQUAL(report.state, GORI_FEATURE_ERROR);
}

GT_TEST(features_are_named_one_by_one)
{
    GT_EQUAL(gi_uring_features_parse(NULL), 0);
    GT_EQUAL(gi_uring_features_parse(""), 0);
    GT_EQUAL(gi_uring_features_parse("no_iowait"), GI_URING_NO_IOWAIT);
    GT_EQUAL(gi_uring_features_parse("no_iowait,unknown,,resize_rings"),
             GI_URING_NO_IOWAIT | GI_URING_RESIZE_RINGS);
    GT_EQUAL(gi_uring_features_parse("no_iowaits,no_iowai"), 0);
    GT_EQUAL(gi_uring_features_parse("all"), GI_URING_ENGINE);
}

GT_TEST(report_says_what_is_switched_off)
{
    GT_EQUAL(setenv("GORI_URING_DISABLE", "registered_ring,recv_multishot", 1), 0);
    struct gori_engine_report report;
    gi_uring_report(&report);
    GT_CHECK(report.usable);
    uint32_t off = 0;
    for (uint32_t i = 0; i < report.feature_count; i++) {
        GT_CHECK(report.features[i].text[0] != '\0');
        off += report.features[i].state == GORI_FEATURE_OPTION ? 1 : 0;
    }
    GT_EQUAL(off, 2);
    GT_EQUAL(setenv("GORI_URING_DISABLE", "all", 1), 0);
    GT_EQUAL(reported_state(), GORI_FEATURE_OPTION);
    GT_EQUAL(create_engine(), GORI_ENOSYS);
    check_fallback("switched off");
}

GT_MAIN()
