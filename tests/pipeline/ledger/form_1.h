/* form_1.h - the SQL of a ledger file as the first program wrote it. Its dataset "letters" has
 * scope UNIT, a budget of FORM_1_BUDGET and the charges 1 (of 2^30) and 2 (of 2^31): `ann` has paid
 * both, `ben` the first, `cid` the second. Hashes: HMAC-SHA-256 of the IDs under the key 00 01 ..
 * 1f, by Python's hmac. */
#ifndef FORM_1_H
#define FORM_1_H

#define FORM_1_BUDGET 3020657128000

static const char form_1_sql[] =
    "CREATE TABLE dataset(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
    " epsilon REAL NOT NULL, delta REAL NOT NULL, renyi_order INTEGER NOT NULL,"
    " budget INTEGER NOT NULL CHECK(budget >= 0),"
    " scope INTEGER NOT NULL CHECK(scope IN (0, 1)), unit_key BLOB NOT NULL,"
    " opened TEXT NOT NULL, closed TEXT NOT NULL DEFAULT '') STRICT;"
    "CREATE TABLE charge(id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " dataset INTEGER NOT NULL REFERENCES dataset(id),"
    " amount INTEGER NOT NULL CHECK(amount > 0), before INTEGER NOT NULL,"
    " counted INTEGER NOT NULL DEFAULT 1 CHECK(counted IN (0, 1)), date TEXT NOT NULL,"
    " method TEXT NOT NULL, note TEXT NOT NULL, cost TEXT NOT NULL) STRICT;"
    "CREATE INDEX charge_dataset ON charge(dataset);"
    "CREATE TABLE unit(dataset INTEGER NOT NULL REFERENCES dataset(id), hash BLOB NOT NULL,"
    " spent INTEGER NOT NULL CHECK(spent > 0), charge INTEGER NOT NULL,"
    " PRIMARY KEY(dataset, hash)) STRICT, WITHOUT ROWID;"
    "PRAGMA application_id = 1685088588; PRAGMA user_version = 1;"
    "INSERT INTO dataset(name, epsilon, delta, renyi_order, budget, scope, unit_key, opened)"
    " VALUES('letters', 5, 1e-5, 5, 3020657128000, 1,"
    " x'000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f',"
    " '2026-01-01T00:00:00Z');"
    "INSERT INTO charge(dataset, amount, before, date, method, note, cost) VALUES"
    " (1, 1073741824, 0, '2026-01-02T00:00:00Z', 'test', '', 'zcdp 1 0.0001953125'),"
    " (1, 2147483648, 1073741824, '2026-01-03T00:00:00Z', 'test', '', 'zcdp 1 0.000390625');"
    "INSERT INTO unit VALUES"
    " (1, x'0d1f12b8196c52b0db44a5429c83230230c04b5adef6fa56f9cf70c5f0443242',"
    " 3221225472, 2),"
    " (1, x'30c519a1f876a3e5ccefb30672c7178c0f51d52fa462842fad0ae7aa403de0c7',"
    " 1073741824, 1),"
    " (1, x'7539fd157f37d716d57fff0c03945cca460bfbac6ec3eb51e30cc334bf46dc9c',"
    " 2147483648, 2);";

#endif
