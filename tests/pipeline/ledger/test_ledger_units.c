/* test_ledger_units.c - a ledger with a sum for each unit. */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/pipeline/ledger/form_1.h"
#include "tests/pipeline/ledger/ledger_support.h"

SETUP_EACH { make_ledger(DPI_SCOPE_UNIT); }
TEARDOWN_EACH { folder_remove(); }

/* Who pays of these units, as "01". */
static const char *pay_amount(const char *ids, int64_t amount) {
    return pay("letters", ids, rho_of(amount));
}

TEST(test_units) {
    const int64_t budget = info_of("letters").budget, third = budget / 3;
    assert_string_equal(pay_amount("ann ben cid", third), "111");
    assert_string_equal(pay_amount("ann ben", third), "11");
    assert_string_equal(pay_amount("ann", third), "1");
    /* ann has spent three thirds, ben two, cid one, dan nothing; dan stands there twice */
    assert_string_equal(pay_amount("dan ann cid dan ben", 2 * third), "10110");
    assert_string_equal(pay_amount("dan ann cid dan ben", third), "10011");
    assert_string_equal(pay_amount("dan ann cid dan ben", 3 * third), "00000");
    /* Two forms of an integer are one unit. */
    assert_string_equal(pay_amount("7.0 70e-1 8 1.5", 3 * third), "1111");
    assert_string_equal(pay_amount("7 8.0 1.50", third), "001");
    /* What is told follows from the charges, which are public. */
    const dpi_dataset_info info = info_of("letters");
    assert_int_equal(info.charged, 13 * third);
    assert_int_equal(info.left, budget);
    assert_true(info.epsilon_charged == 5);
    dpi_charge c; /* and from nothing of the units: not from how many there are */
    dpi_charge_init(&c);
    assert_ok(dpi_ledger_charge_next(the_ledger, "letters", 1, &c, ERR));
    assert_true(c.id == 2 && c.amount == third && c.before == third);
    /* More than a new unit has is refused for all. */
    assert_error(reserve_of(the_ledger, "letters", rho_of(budget + 1), units_of("ann ben cid")),
                 BUDGET, "a new unit has");
    assert_error(reserve(.01), ARG, "needs the IDs");
    assert_error(dpi_ledger_give_back(the_ledger, 1, ERR), STATE, "");
    assert_ok(dpi_ledger_seal(the_ledger, "letters", ERR));
    assert_error(reserve_of(the_ledger, "letters", .01, units_of("eve")), STATE, "was closed on");
}

/* Neither an ID nor a hash without a key is in the file. */
TEST(test_units_are_hashed) {
    size_t n;
    pay_amount("patient-4711-with-a-long-name ben", 1000);
    close_ledger();
    char *content = read_file(path, &n);
    assert_true(n > 4096);
    assert_null(memmem(content, n, "patient-4711", 12));
    /* SHA-256 of "ben", by sha256sum */
    assert_null(memmem(content, n, "\x67\x00\x86\x9c\x8f\xf7\x48\x0e", 8));
    free(content);
}

/* Which units have paid for a charge is known later, too. */
TEST(test_paid_later) {
    static const char asked[] = "cid ben ann ben";
    pay_amount("ann", info_of("letters").budget - 1);
    assert_string_equal(pay_amount("ann ben", 2), "01");
    pay_amount("ann ben", 1);
    assert_string_equal(paid("letters", asked, 1), "0010");
    assert_string_equal(paid("letters", asked, 2), "0101");
    assert_string_equal(paid("letters", asked, 3), "0111");
    for (int64_t id = -1; id <= 4; id += id == 0 ? 4 : 1)
        assert_error(dpi_ledger_paid(the_ledger, "letters", id, units_of(asked), ERR), ARG,
                     id < 1 ? "id" : "no charge 4");
}

/* ---- Files of an earlier program ------------------------------------------------------------- */

static const char old_ids[] = "ann ben cid dan";

static int64_t form(void) { return read_sql("PRAGMA user_version"); }

/* The unit pays to the last amount that it has left, and not one more. */
static void assert_sum(const char *id, int64_t sum) {
    if (sum > 0) /* more than a new unit has is no charge at all */
        assert_string_equal(pay_amount(id, FORM_1_BUDGET - sum + 1), "0");
    assert_string_equal(pay_amount(id, FORM_1_BUDGET - sum), "1");
    assert_string_equal(pay_amount(id, 1), "0");
}

static void assert_old_sums(void) {
    assert_sum("ann", 3221225472);
    assert_sum("ben", 1073741824);
    assert_sum("cid", 2147483648);
    assert_sum("dan", 0);
}

static void open_form_1(void) {
    close_ledger();
    make_ledger_of_form_1();
    reopen_ledger();
    assert_int_equal(form(), 4);
}

TEST(test_form_1) {
    open_form_1();
    const dpi_dataset_info info = info_of("letters");
    assert_int_equal(info.n_charges, 2);
    assert_int_equal(info.charged, 3221225472);
    assert_int_equal(info.last, 2147483648);
    assert_string_equal(paid("letters", old_ids, 2), "1010");
    assert_string_equal(paid("letters", old_ids, 1), "0100"); /* that ann paid it was not kept */
    reopen_ledger();
    assert_old_sums();
}

/* They took an integer as it stood, 7.0: what it has spent counts for the unit 7, in every form. */
TEST(test_form_1_integers) {
    close_ledger();
    make_ledger_of_form_1();
    exec_sql(path, "UPDATE unit SET hash = x'a913bf697c9a588a1ac64bcc82e32ee9"
                   "b3912bfa530fb48cd537633423482831' WHERE spent = 2147483648");
    reopen_ledger();
    assert_string_equal(paid("letters", "7 7.0 70e-1 8", 2), "1110");
    assert_sum("7", 2147483648);
    assert_string_equal(pay_amount("7.0", 1), "0");
}

#define DROP(table, column) "ALTER TABLE " table " DROP COLUMN " column ";"
#define DROP_UNIT(table)                                                                          \
    DROP(table, "adjacency") DROP(table, "is_record") DROP(table, "record_kind")                  \
    DROP(table, "max_per_unit") DROP(table, "unit_field")

/* Programs that had the table of who paid, before it had a form of its own. */
TEST(test_form_1_with_payers) {
    open_form_1();
    close_ledger();
    exec_sql(path, DROP_UNIT("dataset") DROP_UNIT("charge")
                   "ALTER TABLE charge DROP COLUMN claim; PRAGMA user_version = 1");
    reopen_ledger();
    assert_int_equal(form(), 4);
    assert_string_equal(paid("letters", old_ids, 2), "1010");
    assert_old_sums();
}

/* A file that is only read stays as it is, and tells what it can. */
TEST(test_form_1_read) {
    close_ledger();
    make_ledger_of_form_1();
    assert_ok(open_ledger(path, READ_ONLY, &the_ledger));
    assert_int_equal(info_of("letters").n_charges, 2);
    assert_error(dpi_ledger_paid(the_ledger, "letters", 1, units_of(""), ERR), UNSUPPORTED,
                 "open it once for writing");
    assert_int_equal(form(), 1);
}

/* What does not fit is refused, and nothing of it is changed. */
TEST(test_form_1_damaged) {
    close_ledger();
    make_ledger_of_form_1();
    exec_sql(path, "UPDATE unit SET charge = 7 WHERE spent = 1073741824");
    for (int i = 0; i < 2; i++)
        assert_error(open_ledger(path, OPEN, &the_ledger), FORMAT, "damaged");
    assert_int_equal(form(), 1);
    exec_sql(path, "UPDATE unit SET charge = 1 WHERE spent = 1073741824");
    reopen_ledger();
    assert_old_sums();
}

/* Whoever comes second finds the form of the first. */
TEST(test_form_1_processes) {
    enum { N = 4 };
    pid_t processes[N];
    close_ledger();
    make_ledger_of_form_1();
    for (int i = 0; i < N; i++) {
        processes[i] = fork();
        assert_true(processes[i] >= 0);
        if (processes[i] == 0) {
            const dpi_ledger_units *units = units_of("ann ben");
            const bool ok = open_ledger(path, OPEN, &the_ledger) == DPI_STATUS_OK &&
                            reserve_of(the_ledger, "letters", rho_of(1000), units) == DPI_STATUS_OK;
            _exit(ok && units->pays[0] == 1 && units->pays[1] == 1 ? 0 : 1);
        }
    }
    for (int i = 0; i < N; i++) {
        int status;
        assert_int_equal(waitpid(processes[i], &status, 0), processes[i]);
        assert_int_equal(status, 0);
    }
    reopen_ledger();
    assert_int_equal(info_of("letters").n_charges, 2 + N);
    assert_string_equal(paid("letters", old_ids, 2 + N), "1100");
    assert_sum("ben", 1073741824 + 1000 * N);
}
