-- Which kinds of goods earn how much in which region, in the second half of the year?
SELECT region,
       category,
       count(*) AS sales,
       sum(quantity * price * (1 - coalesce(discount, 0))) AS revenue,
       round(avg(quantity), 2) AS items_per_sale
FROM sales
JOIN stores USING (store_id)
JOIN products USING (product_id)
WHERE sold_at >= '2025-07-01'
GROUP BY region, category
HAVING count(*) > 300
ORDER BY revenue DESC
LIMIT 6;
