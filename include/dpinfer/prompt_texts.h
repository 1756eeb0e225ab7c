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

/* With a description, which stands between the first and the second, the task is this; base models
 * continue after theirs. */
#define DPI_DESCRIBED_BEFORE "Please write a fictional document of this kind: "
#define DPI_DESCRIBED_AFTER                                                                     \
    ". Do not copy names, dates or other particulars. Output only the text of the new document."
#define DPI_DESCRIBED_BASE_BEFORE "One document of this kind: "
#define DPI_DESCRIBED_BASE_AFTER "\n\n"

#endif
