/* signals.c - see signals.h. Handlers call nothing but async-signal-safe functions. */
#include "tools/signals.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tools/output.h"

static volatile sig_atomic_t stop_signal;
static const char *volatile words;

static void say(const char *text) {
    for (size_t n = text ? strlen(text) : 0; n > 0;) {
        const ssize_t written = write(STDERR_FILENO, text, n);
        if (written <= 0)
            return;
        text += written;
        n -= (size_t)written;
    }
}

static void set_handler(int number, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

static void end_program(int number) {
    output_end_all();
    set_handler(number, SIG_DFL, 0);
    raise(number);
}

static void on_bus(int number) {
    (void)number;
    output_end_all();
    say(words);
    _exit(CLI_FAILED);
}

static void on_stop(int number) {
    if (stop_signal)
        end_program(number);
    stop_signal = number;
}

void signals_catch(void) {
    static const int stopping[] = {SIGINT, SIGTERM, SIGHUP};
    static const int ending[] = {SIGQUIT, SIGABRT, SIGSEGV, SIGILL,  SIGFPE,    SIGSYS,
                                 SIGTRAP, SIGXCPU, SIGALRM, SIGVTALRM, SIGPROF, SIGUSR1,
                                 SIGUSR2, SIGPOLL};
    for (size_t i = 0; i < sizeof stopping / sizeof *stopping; i++) {
        struct sigaction old;
        /* nohup(1): a run goes on without its terminal. */
        const bool ignored = sigaction(stopping[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN;
        if (!ignored || stopping[i] != SIGHUP)
            set_handler(stopping[i], on_stop, SA_RESTART);
    }
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        set_handler(ending[i], end_program, (int)SA_RESETHAND);
    set_handler(SIGBUS, end_program, (int)SA_RESETHAND);
    set_handler(SIGXFSZ, SIG_IGN, 0); /* a write that fails, like any other */
}

void signals_catch_bus(const char *last_words) {
    words = last_words;
    set_handler(SIGBUS, on_bus, (int)SA_RESETHAND);
}

int signals_stop(void) { return stop_signal; }

int32_t signals_cancel(void *user) {
    (void)user;
    return stop_signal != 0;
}
