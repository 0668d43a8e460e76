/* SPDX-License-Identifier: MIT */
/*
 * Dates of HTTP.  The three forms are fixed but for the name of the day, so that each is a pattern:
 *
 *     Sun, 06 Nov 1994 08:49:37 GMT
 *     Sunday, 06-Nov-94 08:49:37 GMT
 *     Sun Nov  6 08:49:37 1994
 *
 * Invariants: names are case-sensitive, as the grammar has them; what parses also exists in the
 * proleptic Gregorian calendar (no 30 Feb); second 60 counts as 59.
 *
 * Thread: any.
 * Reading: RFC 9110 5.6.7; H. Hinnant, chrono-compatible low-level date algorithms.
 */
#include "proto/http_date.h"

#include <stdbool.h>
#include <string.h>

#define SECONDS_PER_DAY 86400
#define DAYS_PER_ERA    146097 /* 400 years */

static const char month_names[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
static const char day_names[7][10] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday"};

struct date {
    int64_t year;
    int month; /* 1 to 12 */
    int day;
    int hour;
    int minute;
    int second;
};

/* Years start in March here, which puts the leap day at the end. */
static int64_t days_from_date(const struct date *date)
{
    const int64_t year = date->month <= 2 ? date->year - 1 : date->year;
    const int64_t era = (year >= 0 ? year : year - 399) / 400;
    const int64_t year_of_era = year - era * 400;
    const int64_t month = date->month > 2 ? date->month - 3 : date->month + 9;
    const int64_t day_of_year = (153 * month + 2) / 5 + date->day - 1;
    const int64_t day_of_era =
        year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

    return era * DAYS_PER_ERA + day_of_era - 719468;
}

static void date_from_days(int64_t days, struct date *ret_date)
{
    const int64_t shifted = days + 719468;
    const int64_t era = (shifted >= 0 ? shifted : shifted - DAYS_PER_ERA + 1) / DAYS_PER_ERA;
    const int64_t day_of_era = shifted - era * DAYS_PER_ERA;
    const int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    const int64_t day_of_year =
        day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    const int64_t month = (5 * day_of_year + 2) / 153;

    ret_date->day = (int)(day_of_year - (153 * month + 2) / 5 + 1);
    ret_date->month = (int)(month < 10 ? month + 3 : month - 9);
    ret_date->year = year_of_era + era * 400 + (ret_date->month <= 2 ? 1 : 0);
}

static void put_digits(uint8_t *text, int64_t value, int count)
{
    while (count > 0) {
        count--;
        text[count] = (uint8_t)('0' + value % 10);
        value /= 10;
    }
}

void gi_http_date_format(int64_t seconds, uint8_t *ret_text)
{
    struct date date;
    int64_t days;
    int64_t second_of_day;

    if (seconds < GI_HTTP_DATE_SECONDS_MIN) {
        seconds = GI_HTTP_DATE_SECONDS_MIN;
    } else if (seconds > GI_HTTP_DATE_SECONDS_MAX) {
        seconds = GI_HTTP_DATE_SECONDS_MAX;
    }
    days = (seconds >= 0 ? seconds : seconds - SECONDS_PER_DAY + 1) / SECONDS_PER_DAY;
    second_of_day = seconds - days * SECONDS_PER_DAY;
    date_from_days(days, &date);
    memcpy(ret_text, "---, -- --- ---- --:--:-- GMT", GI_HTTP_DATE_SIZE);
    /* 1970-01-01 was a Thursday. */
    memcpy(ret_text, day_names[(days % 7 + 7 + 4) % 7], 3);
    put_digits(ret_text + 5, date.day, 2);
    memcpy(ret_text + 8, month_names[date.month - 1], 3);
    put_digits(ret_text + 12, date.year, 4);
    put_digits(ret_text + 17, second_of_day / 3600, 2);
    put_digits(ret_text + 20, second_of_day / 60 % 60, 2);
    put_digits(ret_text + 23, second_of_day % 60, 2);
}

/* In a pattern, a digit may stand at '0', a digit or a space at '_', any letter at 'A'. */
static bool fits(const uint8_t *text, const char *pattern)
{
    for (size_t i = 0; pattern[i] != '\0'; i++) {
        const bool digit = text[i] >= '0' && text[i] <= '9';
        const bool letter = (text[i] | 0x20) >= 'a' && (text[i] | 0x20) <= 'z';
        bool fit = text[i] == (uint8_t)pattern[i];

        if (pattern[i] == '0') {
            fit = digit;
        } else if (pattern[i] == '_') {
            fit = digit || text[i] == ' ';
        } else if (pattern[i] == 'A') {
            fit = letter;
        }
        if (!fit) {
            return false;
        }
    }
    return true;
}

static int get_digits(const uint8_t *text, int count)
{
    int value = 0;

    for (int i = 0; i < count; i++) {
        value = value * 10 + (text[i] == ' ' ? 0 : text[i] - '0');
    }
    return value;
}

/* 1 to 12, or 0. */
static int get_month(const uint8_t *text)
{
    for (int i = 0; i < 12; i++) {
        if (memcmp(text, month_names[i], 3) == 0) {
            return i + 1;
        }
    }
    return 0;
}

/* The size of the name of a day at the start of `text`, whole or its first three letters, or 0. */
static size_t day_name_size(struct gori_slice text, bool whole)
{
    for (int i = 0; i < 7; i++) {
        const size_t size = whole ? strlen(day_names[i]) : 3;

        if (text.size >= size && memcmp(text.data, day_names[i], size) == 0) {
            return size;
        }
    }
    return 0;
}

static void get_time(const uint8_t *text, struct date *date)
{
    date->hour = get_digits(text, 2);
    date->minute = get_digits(text + 3, 2);
    date->second = get_digits(text + 6, 2);
}

static bool parse_preferred(struct gori_slice text, struct date *date)
{
    if (text.size != GI_HTTP_DATE_SIZE || day_name_size(text, false) == 0 ||
        !fits(text.data + 3, ", 00 AAA 0000 00:00:00 GMT")) {
        return false;
    }
    date->day = get_digits(text.data + 5, 2);
    date->month = get_month(text.data + 8);
    date->year = get_digits(text.data + 12, 4);
    get_time(text.data + 17, date);
    return true;
}

static bool parse_rfc850(struct gori_slice text, int64_t now_seconds, struct date *date)
{
    static const char pattern[] = ", 00-AAA-00 00:00:00 GMT";
    const size_t name_size = day_name_size(text, true);
    const uint8_t *rest = text.data + name_size;
    struct date now;

    if (name_size == 0 || text.size - name_size != sizeof(pattern) - 1 || !fits(rest, pattern)) {
        return false;
    }
    date_from_days(now_seconds / SECONDS_PER_DAY, &now);
    date->day = get_digits(rest + 2, 2);
    date->month = get_month(rest + 5);
    date->year = now.year - now.year % 100 + get_digits(rest + 9, 2);
    if (date->year > now.year + 50) {
        date->year -= 100;
    }
    get_time(rest + 12, date);
    return true;
}

static bool parse_asctime(struct gori_slice text, struct date *date)
{
    static const char pattern[] = " AAA _0 00:00:00 0000";

    if (text.size != 3 + sizeof(pattern) - 1 || day_name_size(text, false) == 0 ||
        !fits(text.data + 3, pattern)) {
        return false;
    }
    date->month = get_month(text.data + 4);
    date->day = get_digits(text.data + 8, 2);
    get_time(text.data + 11, date);
    date->year = get_digits(text.data + 20, 4);
    return true;
}

static bool exists(const struct date *date)
{
    struct date same;

    if (date->month == 0 || date->day == 0 || date->day > 31 || date->hour > 23 ||
        date->minute > 59 || date->second > 60) {
        return false;
    }
    date_from_days(days_from_date(date), &same);
    return same.day == date->day;
}

int gi_http_date_parse(struct gori_slice text, int64_t now_seconds, int64_t *ret_seconds)
{
    struct date date = {0};

    if (now_seconds < 0 || now_seconds > GI_HTTP_DATE_SECONDS_MAX) {
        now_seconds = now_seconds < 0 ? 0 : GI_HTTP_DATE_SECONDS_MAX;
    }
    if (!parse_preferred(text, &date) && !parse_rfc850(text, now_seconds, &date) &&
        !parse_asctime(text, &date)) {
        return -1;
    }
    if (!exists(&date)) {
        return -1;
    }
    date.second = date.second == 60 ? 59 : date.second;
    *ret_seconds =
        days_from_date(&date) * SECONDS_PER_DAY + date.hour * 3600 + date.minute * 60 + date.second;
    return 0;
}
