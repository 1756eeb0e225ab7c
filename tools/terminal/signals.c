/* signals.c - see signals.h. Handlers call nothing but async-signal-safe functions. */
#include "tools/terminal/signals.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "dpinfer/memory.h"
#include "tools/terminal/output_end.h"

static volatile sig_atomic_t stop_signal;
static char *volatile words; /* of malloc */
static double deadline; /* 0: none */

/* ---- Handlers, which run in one thread ---------------------------------------------------------
 */

static pthread_t owner; /* which writes the outputs, and holds signals while it does (output.c) */

/* In another thread the signal goes to the owner. A thread that cannot go on, because what it does
 * has failed, waits for the end. */
static bool is_passed_on(int number, const siginfo_t *info) {
    if (pthread_equal(pthread_self(), owner))
        return false;
    pthread_kill(owner, number);
    while (info->si_code > 0 || number == SIGABRT)
        pause();
    return true;
}

static void set_handler(int number, void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = flags | SA_SIGINFO};
    sigfillset(&action.sa_mask); /* handlers do not interrupt each other */
    sigaction(number, &action, NULL);
}

static void set_disposition(int number, void (*disposition)(int)) {
    struct sigaction action = {.sa_handler = disposition};
    sigaction(number, &action, NULL);
}

/* The signal is held until the handler returns, and ends the program then. */
static void end_program(int number) {
    output_end_all();
    set_disposition(number, SIG_DFL);
    raise(number);
}

static void end_with_words(const char *reason) {
    output_end_all();
    output_say(reason);
    output_say(words);
    _exit(CLI_FAILED);
}

static void on_end(int number, siginfo_t *info, void *context) {
    (void)context;
    if (!is_passed_on(number, info))
        end_program(number);
}

static void on_bus(int number, siginfo_t *info, void *context) {
    (void)context;
    if (!is_passed_on(number, info))
        end_with_words("\ndpinfer: memory of the model could not be read: its file has become "
                       "shorter, or its disk has failed\n\n");
}

static void on_stop(int number, siginfo_t *info, void *context) {
    (void)context;
    if (is_passed_on(number, info))
        return;
    if (stop_signal)
        end_program(number);
    stop_signal = number;
}

/* Whether a signal that nobody handles ends the program. */
static bool ends_program(int number) {
    static const int others[] = {SIGKILL, SIGSTOP, SIGCHLD,  SIGCONT, SIGTSTP, SIGTTIN,
                                 SIGTTOU, SIGURG,  SIGWINCH, SIGPIPE, SIGXFSZ};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (number == others[i])
            return false;
    return true;
}

static const int stopping[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
enum { N_STOPPING = sizeof stopping / sizeof *stopping };

static void set_handlers(void (*stop)(int, siginfo_t *, void *), int flags) {
    struct sigaction hangup;
    owner = pthread_self();
    /* nohup(1): a run goes on without its terminal. */
    const bool ignores_hangup =
        sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler == SIG_IGN;
    for (int number = 1; number <= SIGRTMAX; number++)
        if (ends_program(number) && number != SIGBUS) /* signals_begin */
            set_handler(number, on_end, 0);
    for (size_t i = 0; i < N_STOPPING; i++)
        if (!ignores_hangup || stopping[i] != SIGHUP)
            set_handler(stopping[i], stop, flags);
    if (ignores_hangup)
        set_disposition(SIGHUP, SIG_IGN);
    set_disposition(SIGXFSZ, SIG_IGN); /* a write that fails, like any other */
}

void signals_interrupt(bool on) {
    struct sigaction action;
    for (size_t i = 0; i < N_STOPPING; i++) {
        if (sigaction(stopping[i], NULL, &action) != 0 || action.sa_sigaction != on_stop)
            continue;
        action.sa_flags = on ? action.sa_flags & ~SA_RESTART : action.sa_flags | SA_RESTART;
        sigaction(stopping[i], &action, NULL);
    }
}

void signals_catch(void) { set_handlers(on_stop, SA_RESTART); }

void signals_clean_up(void) { set_handlers(on_end, 0); }

void signals_begin(void) {
    owner = pthread_self();
    set_handler(SIGBUS, on_bus, 0);
}

void signals_last_words(char *last_words) {
    char *before = words;
    words = last_words;
    free(before);
}

void *signals_json_malloc(size_t n_bytes) {
    void *block = dpi_private_malloc(n_bytes);
    if (!block)
        end_with_words("dpinfer: out of memory for JSON\n\n");
    return block;
}

void fftw_assertion_failed(const char *condition, int line, const char *file) {
    (void)condition, (void)line, (void)file;
    end_with_words("dpinfer: out of memory for a Fourier transform\n\n");
}

int signals_stop(void) { return stop_signal; }

void signals_stop_after(double seconds) { deadline = cli_now() + seconds; }

int signals_code(void) { return stop_signal ? 128 + stop_signal : CLI_STOPPED; }

int32_t signals_cancel(void *user) {
    (void)user;
    return stop_signal != 0 || (deadline > 0 && cli_now() >= deadline);
}
