/* prompt_texts.h - the prompts of models without a query. The built-in model is trained on exactly
 * those of chat models without a description (corpus/prompt_forms.c). */
#ifndef DPI_PROMPT_TEXTS_H
#define DPI_PROMPT_TEXTS_H

/* A private prompt is the record between the first two, and the task. */
#define DPI_CHAT_BEFORE "Here is one document of a collection:\n\n"
#define DPI_CHAT_AFTER "\n\nThe document ends here.\n\n"
#define DPI_CHAT_TASK                                                                           \
    "Please write another, fictional document of the kind that the collection holds. Do not "   \
    "copy names, dates or other particulars. Output only the text of the new document."

/* A description makes a list, which the answer goes on with: this, the description, and this. */
#define DPI_LISTED_BEFORE "Write a list of made-up "
#define DPI_LISTED_AFTER "."
#define DPI_LISTED_BASE_BEFORE "A list of made-up "
#define DPI_LISTED_BASE_AFTER ":\n\n"
/* Around each text of it, where the caller has no other wording. */
#define DPI_LISTED_ANSWER " \""
#define DPI_LISTED_STOP "\""

/* Texts that may have more tokens than this are documents, each below a heading and a number. */
#define DPI_LISTED_TOKENS 256
#define DPI_HEADED_BEFORE "Write made-up "
#define DPI_HEADED_ANSWER "\n\n"
#define DPI_HEADED_STOP "\n# No. "
#define DPI_HEADED_BASE_BEFORE "A collection of "
#define DPI_HEADED_BASE_ANSWER ":\n\n"
#define DPI_HEADED_BASE_STOP "\nText "
/* Words that no such text has twice, where the caller says nothing of it: small models go in
 * circles. */
#define DPI_HEADED_NO_REPEAT 8

/* With a description and no answer, the task is the first two with the description between them;
 * base models continue after theirs. */
#define DPI_DESCRIBED_BEFORE "Please write a fictional document of this kind: "
#define DPI_DESCRIBED_AFTER                                                                     \
    ". Do not copy names, dates or other particulars. Output only the text of the new document."
#define DPI_DESCRIBED_BASE_BEFORE "One document of this kind: "
#define DPI_DESCRIBED_BASE_AFTER "\n\n"

#endif
