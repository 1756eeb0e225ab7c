/* people.h - what the tests of fine-tuning and of private evolution share: a folder, a tiny model,
 * records of people, a ledger. */
#ifndef DPI_PEOPLE_H
#define DPI_PEOPLE_H

#include "dpinfer/ledger.h"
#include "dpinfer/records.h"
#include "tests/support/own.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

static char dir[256];
static dpi_model *model;
static void *image;
static dpi_records *by_record, *by_person; /* of people: what a unit is */

OWNED(dpi_records, dpi_records_close)
OWNED(dpi_ledger, dpi_ledger_close)
OWNED(dpi_model, dpi_model_close)

/* A file of the folder, read with these options, or the defaults if that is NULL. */
static inline dpi_records *read_records(const char *name, const char *content,
                                        const dpi_records_options *options) {
    DEFAULTS(dpi_records_options, o);
    dpi_records *records;
    write_file(path_in(dir, name), content, strlen(content));
    assert_ok(dpi_records_open(path_in(dir, name), options ? options : &o, &records, ERR));
    return records;
}

/* Three records of person a, of which the second is empty, two of b, one without an ID, one of c.
 */
static inline dpi_records *open_people(const char *unit_field) {
    DEFAULTS(dpi_records_options, o);
    o.unit_field = unit_field;
    return read_records("people.csv",
                        "id,text\na,one of a\na,\na,three of a\nb,one of b\n,nobody\nb,two of b\n"
                        "c,a long text of c that is cut where the positions end\n",
                        &o);
}

SETUP {
    tiny_spec spec = tiny_default();
    make_dir(dir, sizeof dir);
    model = tiny_open(&spec, 5, &image);
    by_record = open_people(NULL), by_person = open_people("id");
}

TEARDOWN {
    dpi_records_close(by_record), dpi_records_close(by_person);
    dpi_model_close(model);
    free(image);
    remove_dir(dir);
}

/* A new ledger with the dataset "people". */
static inline dpi_ledger *open_ledger(double epsilon, double delta, int32_t scope) {
    const char *path = path_in(dir, "year.ledger");
    DEFAULTS(dpi_ledger_options, options);
    DEFAULTS(dpi_dataset_options, dataset);
    dpi_ledger *ledger;
    remove(path);
    options.create = 1;
    dataset.name = "people", dataset.epsilon = epsilon, dataset.delta = delta;
    dataset.scope = scope;
    assert_ok(dpi_ledger_open(path, &options, &ledger, ERR));
    assert_ok(dpi_ledger_add(ledger, &dataset, ERR));
    return ledger;
}

#endif
